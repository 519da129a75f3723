#!/bin/sh
# Times examples/taylor_green and its peer over FFTW-MPI by turns, and prints the ratios of medians.
#
#   benches/peers/taylor_green.sh [SIZE [ROUNDS [STEPS [RANKS...]]]]
#
# Below 1 the example is faster. OPTIONS goes to the example, such as --shared-arrays. Both print
# the energy after the steps, which must agree.
set -eu
cd "$(dirname "$0")/../.."
size=${1:-128} rounds=${2:-5} steps=${3:-5}
if [ $# -gt 3 ]; then shift 3; else set -- 1 2 4; fi

cargo build --quiet --release --example taylor_green --features mpi
mpicc -std=c11 -O3 -march=native benches/peers/taylor_green.c -o target/taylor_green_peer \
    -lfftw3_mpi -lfftw3 -lm
dt=0.0078125
end=$(awk "BEGIN { print $dt * $steps }")
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

# The energy and the seconds of a step, of either program.
ours() {
    mpirun -n "$1" target/release/examples/taylor_green --ranks "$1" --size "$size" --step "$dt" \
        --time "$end" --every "$end" ${OPTIONS:-} |
        awk '$2 ~ /^0[.]/ { energy = $2 } /median/ { sub(/.*median /, ""); print energy, $1 }'
}
theirs() {
    mpirun -n "$1" target/taylor_green_peer "$size" "$steps" "$dt" |
        awk '/energy/ { energy = $NF } /median/ { sub(/.*median /, ""); print energy, $1 }'
}

for ranks in "$@"; do
    for round in $(seq "$rounds"); do
        echo "ours $(ours "$ranks")"
        echo "theirs $(theirs "$ranks")"
    done | sort -k1,1 -k3,3g | awk -v ranks="$ranks" '
        { seconds[$1, ++count[$1]] = $3; energy[$1] = $2 }
        END {
            ours = seconds["ours", int((count["ours"] + 1) / 2)]
            theirs = seconds["theirs", int((count["theirs"] + 1) / 2)]
            printf "%d ranks: %.4f s a step, FFTW-MPI %.4f s, ratio %.2f; energies %s and %s\n",
                ranks, ours, theirs, ours / theirs, energy["ours"], energy["theirs"]
        }'
done
