#!/bin/sh
# SPDX-License-Identifier: MIT
# check.py with the Python that has the readers: that of ./dev interchange, or the system's. 77 where there is none.
#     tests/interchange/run.sh <build folder>
python=$1/interchange/bin/python
[ -x "$python" ] || python=$(command -v python3) || { echo "skipped: there is no python3"; exit 77; }
exec "$python" "$(dirname "$0")/check.py" "$1/bin"
