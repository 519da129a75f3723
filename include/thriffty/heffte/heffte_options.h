/* thriffty in the place of heFFTe 2.4: options. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_OPTIONS_H
#define THRIFFTY_HEFFTE_OPTIONS_H

#include <ostream>

#include "heffte_backends.h"

namespace heffte {

/** The factor of results: 1, 1/N or 1/sqrt(N). */
enum class scale { none, full, symmetric };

enum class direction { forward, backward };

/** How data is exchanged. */
enum class reshape_algorithm { alltoall = 0, alltoallv = 3, p2p = 1, p2p_plined = 2 };

/**
 * Hints. The library chooses exchange and layouts by its own model; with
 * `THRIFFTY_HEFFTE=strict` in the environment it follows `algorithm` and `use_pencils`.
 */
struct plan_options {
    template <typename backend_tag>
    explicit plan_options(backend_tag const)
        : plan_options(!std::is_same<backend_tag, backend::mkl>::value, reshape_algorithm::alltoallv, true) {}

    plan_options(bool reorder, reshape_algorithm alg, bool pencils)
        : use_reorder(reorder), algorithm(alg), use_pencils(pencils), use_gpu_aware(true) {}

    void use_num_subranks(int num_subranks) {
        subranks_ = num_subranks;
        subcomm_ = MPI_COMM_NULL;
    }
    void use_subcomm(MPI_Comm comm) {
        subcomm_ = comm;
        subranks_ = -1;
    }
    int get_subranks() const { return subranks_; }
    MPI_Comm get_subcomm() const { return subcomm_; }

    bool use_reorder;
    reshape_algorithm algorithm;
    bool use_pencils;
    bool use_gpu_aware;

private:
    int subranks_ = -1;
    MPI_Comm subcomm_ = MPI_COMM_NULL;
};

inline std::ostream &operator<<(std::ostream &out, plan_options const &options) {
    char const *const names[] = {"mpi:alltoall", "mpi:point-to-point", "mpi:point-to-point-pipelined", "mpi:alltoallv"};
    auto flag = [](bool yes) { return yes ? "true" : "false"; };
    return out << "options = (reorder:" << flag(options.use_reorder)
               << ", algorithm:" << names[static_cast<int>(options.algorithm)]
               << ", pencils:" << flag(options.use_pencils) << ", gpu-aware:" << flag(options.use_gpu_aware) << ")";
}

template <typename backend_tag>
plan_options default_options() {
    return plan_options(backend_tag());
}

namespace mpi {

inline int comm_rank(MPI_Comm const comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
inline int comm_size(MPI_Comm const comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}
inline int world_rank() { return comm_rank(MPI_COMM_WORLD); }
inline bool world_rank(int rank) { return world_rank() == rank; }

/** The type of MPI for a type of numbers. */
template <typename scalar_type>
MPI_Datatype type_from() {
    static_assert(std::is_same<scalar_type, int>::value || std::is_same<scalar_type, long long>::value ||
                      detail::precision<scalar_type>::value != 0,
                  "int, long long, or real or complex numbers");
    if (std::is_same<scalar_type, int>::value) return MPI_INT;
    if (std::is_same<scalar_type, long long>::value) return MPI_LONG_LONG;
    bool const single = detail::precision<scalar_type>::value == 32;
    if (detail::width<scalar_type>::value == 2) return single ? MPI_C_FLOAT_COMPLEX : MPI_C_DOUBLE_COMPLEX;
    return single ? MPI_FLOAT : MPI_DOUBLE;
}

/** A communicator of some ranks of another. Collective over the other; MPI_COMM_NULL elsewhere. */
inline MPI_Comm new_comm_from_group(std::vector<int> const &ranks, MPI_Comm const comm) {
    MPI_Group all, some;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm made;
    MPI_Comm_create(comm, some, &made);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return made;
}
inline void comm_free(MPI_Comm const comm) {
    MPI_Comm own = comm;
    if (own != MPI_COMM_NULL) MPI_Comm_free(&own);
}

} // namespace mpi

/** heFFTe's traces of its own steps. There are none. */
inline void init_tracing(std::string const &) {}
inline void finalize_tracing() {}
struct add_trace {
    explicit add_trace(std::string const &) {}
};

} // namespace heffte

#endif
