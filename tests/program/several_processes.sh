# Sourced by tests that mpirun several processes, with $bin, $folder and $name set: an empty folder, fail and launch. Skips
# where there is no mpirun, or no MPI in the programs. MPIRUN: another mpirun.
mpirun=${MPIRUN:-mpirun}
command -v "$mpirun" > /dev/null || { echo "skipped: there is no $mpirun"; exit 77; }
rm -rf "$folder"
mkdir -p "$folder"
fail() { echo "$name: $*" >&2; exit 1; }

# Open MPI wants to be told that root and few cores are meant; MPICH knows no such words.
rooms=
if "$mpirun" --version 2>&1 | grep -q 'Open MPI'; then rooms="--allow-run-as-root --oversubscribe"; fi
# Two mpirun that start at once make one folder for both, and one of them finds it there and gives up.
sessions=$(mktemp -d)
export OMPI_MCA_orte_tmpdir_base="$sessions"
trap 'rm -rf "$sessions"' EXIT
launch() { n=$1; shift; "$mpirun" $rooms -n "$n" "$@"; }

status=0
said=$(launch 2 "$bin/engram-ff_mem" train --task t_maze --dry-run 2>&1) || status=$?
case $said in
    *"compiled without MPI"*)
        [ "$(echo "$said" | grep -c 'compiled without MPI')" = 1 ] || fail "said more than once: $said"
        echo "skipped: the programs were compiled without MPI"
        exit 77 ;;
esac
[ "$status" = 0 ] || fail "a dry run of two processes ended with $status: $said"

status=0
said=$(launch 2 "$bin/engram-ff_mem" train --task t_maze --set learner.standardise=true --dry-run 2>&1) || status=$?
case $status-$said in
    0-*) fail "two processes may train on rows that meet" ;;
    *"2 processes, but rows of a batch meet in this model"*) ;;
    *) fail "two processes whose rows meet: $said" ;;
esac
