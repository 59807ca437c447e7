#!/bin/sh
# Two ranks in two network namespaces, which reach each other only over a pair of virtual cards: MPI
# over TCP, as between two machines. Needs root, ip and Open MPI; says so and passes where one is
# missing. long_mpi_netns.sh BUILD
set -eu
if [ -x "$1/qkv-mpi" ]; then qkv=$(cd "$1" && pwd)/qkv-mpi; else qkv=$(cd "$1" && pwd)/qkv; fi
skip() { echo "mpi over namespaces: left out, $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "this needs root"
command -v ip >/dev/null 2>&1 || skip "there is no ip command"
mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "there is no Open MPI"
ldd "$qkv" | grep -q libmpi || skip "the build has no MPI"
a=qkv-a-$$ b=qkv-b-$$
ip netns add "$a" 2>/dev/null || skip "namespaces cannot be made here"
dir=$(mktemp -d)
clean() { ip netns del "$a" 2>/dev/null || true; ip netns del "$b" 2>/dev/null || true; rm -rf "$dir"; }
trap clean EXIT
ip netns add "$b"
ip link add va$$ netns "$a" type veth peer name vb$$ netns "$b" 2>/dev/null || skip "virtual cards cannot be made here"
ip -n "$a" addr add 10.231.7.1/24 dev va$$
ip -n "$b" addr add 10.231.7.2/24 dev vb$$
for n in "$a va$$" "$b vb$$"; do
    set -- $n
    ip -n "$1" link set "$2" up
    ip -n "$1" link set lo up
done
cd "$dir"

# What stands for ssh: a "host" is a namespace.
cat > agent <<AGENT
#!/bin/sh
# agent HOST COMMAND…: runs the command in the namespace of the host
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
case "\$host" in 10.231.7.1) n=$a ;; 10.231.7.2) n=$b ;; *) echo "no such host: \$host" >&2; exit 1 ;; esac
exec ip netns exec "\$n" sh -c "\$*"
AGENT
chmod +x agent

i=0
while [ $i -lt 100 ]; do
    printf 'good\tthe film number %d was fine and clever\nbad\tthe film number %d was dull\n' $i $i
    i=$((i + 1))
done >rows.tsv
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
model="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --lr 0.01 --batch-tokens 256 --steps 30"
apart() {
    ip netns exec "$a" mpirun --mca plm_rsh_agent "$dir/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.231.7.0/24 \
        --mca oob_tcp_if_include 10.231.7.0/24 -n 2 --host 10.231.7.1:1,10.231.7.2:1 --wdir "$dir" \
        "$qkv" train classify --train rows.tsv --out "$1" $model >out 2>&1 || { cat out; echo "FAILED: two namespaces"; exit 1; }
}
apart one
apart two
mpirun --oversubscribe -n 2 "$qkv" train classify --train rows.tsv --out near $model >out 2>&1 || { cat out; echo "FAILED: near"; exit 1; }
cmp one/model.safetensors two/model.safetensors || { echo "FAILED: other bits the second time"; exit 1; }
cmp one/model.safetensors near/model.safetensors || { echo "FAILED: other bits over the network"; exit 1; }
echo "mpi over namespaces: ok"
