#!/bin/sh
# Times Poisson solvers by turns: systems between walls along z, three transforms with ends along z,
# and benches/peers/walls.c over FFTW-MPI.
#
#   benches/peers/walls.sh [SHAPE [ROUNDS [REPS [RANKS...]]]]
#
# Each program runs REPS solves in each of ROUNDS turns. For each there are the median of the turns'
# medians and the least time of all, and then ratios of both to the solver between walls.
# OPTIONS goes to fft-cli, such as --shared-arrays.
set -eu
cd "$(dirname "$0")/../.."
shape=${1:-256x256x192} rounds=${2:-5} reps=${3:-5}
if [ $# -gt 3 ]; then shift 3; else set -- 1 2 4; fi

cargo build --quiet --release --package fft-cli --features mpi
mpicc -std=c11 -O3 -march=native benches/peers/walls.c -o target/walls_peer -lfftw3_mpi -lfftw3 -lm
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

# Median and least seconds of a solve, and the residual.
ours() {
    mpirun -n "$1" target/release/fft-cli bench poisson "$shape" --ends "periodic,periodic,$2" \
        --reps "$reps" --json ${OPTIONS:-} |
        sed -n 's/.*"seconds":{"median":\([^,]*\),"min":\([^,]*\),.*"residual":\([^}]*\)}.*/\1 \2 \3/p'
}
theirs() {
    mpirun -n "$1" target/walls_peer "$shape" "$reps" |
        sed -n 's/median \(.*\) s, least \(.*\) s, residual \(.*\)/\1 \2 \3/p'
}

for ranks in "$@"; do
    for round in $(seq "$rounds"); do
        echo "systems $(ours "$ranks" tridiagonal)"
        echo "transforms $(ours "$ranks" neumann)"
        echo "FFTW-MPI $(theirs "$ranks")"
    done | sort -k1,1 -k2,2g | awk -v ranks="$ranks" '
        {
            medians[$1, ++count[$1]] = $2
            if (count[$1] == 1 || $3 < least[$1]) least[$1] = $3
            if ($4 > residual[$1]) residual[$1] = $4
        }
        END {
            split("systems transforms FFTW-MPI", names)
            for (i = 1; i <= 3; i++) {
                name = names[i]
                median[name] = medians[name, int((count[name] + 1) / 2)]
                printf "%d ranks, %-10s  median %.4f s, least %.4f s, residual %.0e", ranks, name, median[name],
                    least[name], residual[name]
                if (i > 1) printf "; systems take %.2f of the median, %.2f of the least",
                    median["systems"] / median[name], least["systems"] / least[name]
                printf "\n"
            }
        }'
done
