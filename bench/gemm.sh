#!/bin/sh
# Our matrix products beside oneDNN's and OpenBLAS's, in turn in one process, best of 5, with 1 thread and with all;
# bf16 where the CPU multiplies it.
# Needs libdnnl-dev and libopenblas-openmp-dev (the pthread build does not share threads with OpenMP); run `make` first.
# usage: bench/gemm.sh [rounds]
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
blas=$(pkg-config --variable=libdir openblas-openmp 2>/dev/null || true)
[ -n "$blas" ] || blas=/usr/lib/$(gcc -print-multiarch)/openblas-openmp
[ -f build/libqkv.a ] || { echo "bench/gemm.sh: build/libqkv.a is missing; run make first" >&2; exit 1; }
${CC:-cc} -O2 -std=gnu11 -Iinclude -I. -Isrc -I/usr/include/"$(gcc -print-multiarch)"/openblas-openmp \
    bench/gemm_peers.c build/libqkv.a -o build/gemm_peers -fopenmp -ldnnl -L"$blas" -lopenblas \
    -Wl,-rpath,"$blas" -lutf8proc -lpcre2-8 -lm
# Haswell's kernels are OpenBLAS's fastest for AVX2, also on later AMD cores.
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-Haswell}"
for precision in f32 bf16; do
    [ $precision = f32 ] || grep -q avx512_bf16 /proc/cpuinfo || continue
    build/gemm_peers $precision 1 "$rounds"
    [ "$(nproc)" -eq 1 ] || build/gemm_peers $precision "$(nproc)" "$rounds"
done
