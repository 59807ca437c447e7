#!/usr/bin/env python3
"""Our files against the reference library (pip install safetensors numpy); not part of `make test`.

    tests/peer_safetensors.py build      checks that it reads what we write, value by value
    tests/peer_safetensors.py --golden   writes tests/golden/reference.safetensors, which test_safetensors reads
"""
import os, subprocess, sys, tempfile
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))


def golden():
    tensors = {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
        "half": np.array([0.5, -65504], dtype=np.float16),
        "ids": np.array([[1, -2]], dtype=np.int64),
        "none": np.zeros((0, 4), dtype=np.float32),
        "one": np.array(2.5, dtype=np.float64),
    }
    save_file(tensors, os.path.join(HERE, "golden", "reference.safetensors"), metadata={"maker": "reference"})


def check(build):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.safetensors")
        subprocess.run([os.path.join(build, "test_safetensors")], check=True, capture_output=True,
                       env={**os.environ, "QKV_KEEP": path})
        with safe_open(path, framework="np") as f:
            assert f.metadata() == {"who": "we", "format": "pt"}, f.metadata()
            assert sorted(k for k in f.keys() if not k.startswith("brain")) == ["a", "b", "byte", "empty", "long", "scalar"]
            want = np.array([[1.5, -2, 0], [3e38, 1e-40, np.inf]], dtype=np.float32)
            assert f.get_tensor("b").tobytes() == want.tobytes()
            assert f.get_tensor("a").tolist() == [1, 65504]
            assert f.get_tensor("long").tolist() == [7, -1]
            assert f.get_tensor("scalar").shape == () and f.get_tensor("scalar") == 0.1
            assert f.get_tensor("empty").shape == (0, 5)
    print("the reference library reads our file")


if __name__ == "__main__":
    golden() if sys.argv[1:] == ["--golden"] else check(sys.argv[1] if len(sys.argv) > 1 else "build")
