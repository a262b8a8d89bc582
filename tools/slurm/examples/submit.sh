#!/bin/bash
# A job between two that stage for it: submit.sh SRC IN JOB-SCRIPT OUT DST
#   submit.sh alpha:data/run42.h5 /scratch/run42.h5 job.sh /scratch/result.h5 beta:data/
# Each begins only if the one before ended with 0. --kill-on-invalid-dep cancels what can never begin.
# SPDX-License-Identifier: Apache-2.0
set -eu
if [ $# -ne 5 ]; then
  echo "usage: submit.sh SRC IN JOB-SCRIPT OUT DST" >&2
  exit 2
fi
stage=$(dirname "$(readlink -f "$0")")/stage.sh
into=$(sbatch --parsable "$stage" get "$1" "$2")
job=$(sbatch --parsable --dependency="afterok:$into" --kill-on-invalid-dep=yes "$3")
back=$(sbatch --parsable --dependency="afterok:$job" --kill-on-invalid-dep=yes "$stage" send "$4" "$5")
echo "$into $job $back"
