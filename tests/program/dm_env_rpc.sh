# SPDX-License-Identifier: MIT
# Sourced: $python, an interpreter that has the modules $needs. ENGRAM_RPC_PYTHON names another one; skipped where there is none:
#   python3 -m venv ~/.cache/engram/rpc && ~/.cache/engram/rpc/bin/pip install dm-env-rpc dm-env gymnasium
python=${ENGRAM_RPC_PYTHON:-$HOME/.cache/engram/rpc/bin/python}
if ! "$python" -c "import $needs" 2> /dev/null; then
    echo "skipped: there is no $python with $needs"
    exit 77
fi
