#!/bin/bash
# A job that moves files, for others to depend on: sbatch stage.sh get alpha:data/run42.h5 /scratch/run42.h5
# Its words are those of `sluice`; it ends with Sluice's exit code, so 0 means that every byte is on disk and verified. Requeued, it
# goes on with the session that it began. Cancelled, it cancels that.
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=sluice --nodes=1 --ntasks=1 --requeue --open-mode=append
set -u
kept=${SLUICE_STAGES:-$HOME/.sluice-stages}
mkdir -p "$kept" || exit
kept=$kept/$SLURM_JOB_ID
id=$(cat "$kept" 2>/dev/null)

# 124: it runs. 0: it had succeeded. Anything else: it failed, and is begun again.
status=1
if [ -n "$id" ]; then
  sluice session wait --quiet --timeout 0 "$id"
  status=$?
  if [ $status -eq 0 ]; then exit 0; fi
fi
if [ $status -ne 124 ]; then
  id=$(sluice "$@" --detach --on-error fail) || exit
  id=${id##* }
  echo "$id" >"$kept"
fi

# bash runs this when `wait` returns.
trap 'sluice session cancel "$id"' TERM
sluice session wait --quiet "$id" &
wait $!
status=$?
rm -f "$kept"
exit $status
