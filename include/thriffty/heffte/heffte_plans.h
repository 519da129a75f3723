/* thriffty in the place of heFFTe 2.4: plans of thriffty, shared by transforms. MIT OR Apache-2.0.
 *
 * A transform of heFFTe serves both precisions, any number of arrays at once, and a scale for each
 * call. A plan of thriffty has one of each, so plans are made when they are first used.
 * Transforms of the same boxes on the same communicator have the same plans, also one after the
 * other: the last few are kept until the communicator is freed.
 */
#ifndef THRIFFTY_HEFFTE_PLANS_H
#define THRIFFTY_HEFFTE_PLANS_H

#include <cmath>
#include <cstdlib>
#include <limits>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "heffte_geometry.h"
#include "heffte_options.h"

namespace heffte {
namespace detail {

/** Throws what a call of thriffty says: the same on every rank. */
inline void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) throw std::runtime_error(thriffty_last_error());
}

inline bool is_finalized() {
    int yes = 0;
    MPI_Finalized(&yes);
    return yes != 0;
}

using thriffty_handle = std::unique_ptr<thriffty_plan, thriffty_status (*)(thriffty_plan *)>;

/** What a transform is: equal on all ranks but for the boxes. */
struct problem {
    box3d<long long> in, out;
    /** What is done along each dimension. */
    std::array<int32_t, 3> kinds;
    int32_t transform;
    plan_options options;
    /** The device of this rank's data, or -1, and its queue. */
    int32_t device;
    void *stream;
};

/** Options from the environment, as `thriffty_options` has them. */
struct environment {
    static char const *text(char const *name) {
        char const *const found = std::getenv(name);
        return found == nullptr || *found == '\0' ? nullptr : found;
    }
    /** 0 without a value; NaN, which thriffty refuses on every rank, for what is no number. */
    static double number(char const *name) {
        char const *const found = text(name);
        if (found == nullptr) return 0.0;
        char *end = nullptr;
        double const number = std::strtod(found, &end);
        return *end == '\0' ? number : std::numeric_limits<double>::quiet_NaN();
    }
    static bool is(char const *name, char const *value) {
        char const *const found = text(name);
        return found != nullptr && std::string(found) == value;
    }
};

/** The grid that the input boxes of all ranks cover. */
class world {
public:
    /** Collective. */
    world(problem const &mine, MPI_Comm comm) : mine_(mine), whole_({{0, 0, 0}}, {{-1, -1, -1}}) {
        std::vector<long long> own;
        for (box3d<long long> const &box : {mine.in, mine.out}) {
            own.insert(own.end(), box.low.begin(), box.low.end());
            own.insert(own.end(), box.high.begin(), box.high.end());
            own.insert(own.end(), box.order.begin(), box.order.end());
        }
        own.insert(own.end(), mine.kinds.begin(), mine.kinds.end());
        own.push_back(mine.transform);
        own.push_back(static_cast<long long>(mine.options.algorithm));
        own.push_back(mine.options.use_pencils);
        own.push_back(mine.device >= 0);
        int const words = static_cast<int>(own.size());
        all_.resize(own.size() * static_cast<size_t>(mpi::comm_size(comm)));
        MPI_Allgather(own.data(), words, MPI_LONG_LONG, all_.data(), words, MPI_LONG_LONG, comm);
        for (size_t at = 0; at < all_.size(); at += own.size()) {
            in_.push_back(box_at(&all_[at]));
            out_.push_back(box_at(&all_[at + 9]));
        }
        whole_ = find_world(in_);
        // Of planes, nothing is done along dimension 2.
        if (mine_.transform == THRIFFTY_TRANSFORM_R2R && whole_.is2d()) mine_.kinds[2] = THRIFFTY_KIND_NONE;
        validate(own.size());
    }

    /** All that makes two problems equal. The same on every rank. */
    std::vector<long long> const &key() const { return all_; }

    /** The points along the axes of thriffty, which are the dimensions in reverse order. */
    std::array<int64_t, 3> shape() const { return {{whole_.size[2], whole_.size[1], whole_.size[0]}}; }

    /**
     * The product of the lengths that cosine and sine transforms are defined by, or of the
     * sizes.
     */
    double logical_points() const {
        double points = 1.0;
        for (int d = 0; d < 3; d++) points *= logical(mine_.kinds[d], static_cast<double>(whole_.size[d]));
        return points;
    }

    thriffty_brick brick(box3d<long long> const &box) const {
        thriffty_brick brick = {};
        for (int d = 0; d < 3 && !box.empty(); d++) {
            brick.lo[2 - d] = box.low[d] - whole_.low[d];
            brick.hi[2 - d] = box.high[d] + 1 - whole_.low[d];
        }
        return brick;
    }

    problem const &mine() const { return mine_; }

private:
    static box3d<long long> box_at(long long const *words) {
        std::array<int, 3> order;
        for (int i = 0; i < 3; i++) order[i] = static_cast<int>(words[6 + i]);
        return box3d<long long>({{words[0], words[1], words[2]}}, {{words[3], words[4], words[5]}}, order);
    }

    static double logical(int32_t kind, double n) {
        switch (kind) {
        case THRIFFTY_KIND_NONE: return 1.0;
        case THRIFFTY_KIND_DCT1: return 2.0 * (n - 1.0);
        case THRIFFTY_KIND_DST1: return 2.0 * (n + 1.0);
        case THRIFFTY_KIND_DCT2:
        case THRIFFTY_KIND_DST2: return 2.0 * n;
        default: return n;
        }
    }

    /** Plans are made later: what is wrong with boxes is said now, the same on every rank. */
    void validate(size_t words) const {
        for (size_t rank = 0; rank < in_.size(); rank++) {
            std::string const name = "rank " + std::to_string(rank);
            for (size_t word = 18; word < words; word++)
                if (all_[rank * words + word] != all_[word]) throw std::runtime_error(name + " wants another transform than rank 0");
            for (box3d<long long> const *box : {&in_[rank], &out_[rank]})
                for (int d = 0; d < 3; d++)
                    if (box->find_order(d) < 0)
                        throw std::runtime_error("the order of a box of " + name + " lacks dimension " + std::to_string(d));
        }
        if (whole_.empty()) throw std::runtime_error("all input boxes are empty");
        box3d<long long> spectrum = whole_;
        bool halved = false;
        for (int d = 0; d < 3; d++)
            if (mine_.kinds[d] == THRIFFTY_KIND_R2C) {
                spectrum = spectrum.r2c(d);
                halved = true;
            }
        if (!halved && mine_.transform == THRIFFTY_TRANSFORM_R2C)
            throw std::runtime_error("the dimension of half a spectrum is none of 0, 1 and 2");
        if (!world_complete(in_, whole_)) throw std::runtime_error("the input boxes overlap or leave gaps");
        if (!world_complete(out_, spectrum))
            throw std::runtime_error("the output boxes overlap or leave gaps, or are not those of the spectrum");
    }

    problem mine_;
    std::vector<long long> all_;
    std::vector<box3d<long long>> in_, out_;
    box3d<long long> whole_;
};

/** A communicator of our own, freed with its last user. */
class communicator {
public:
    explicit communicator(MPI_Comm comm) { MPI_Comm_dup(comm, &own_); }
    ~communicator() {
        if (!is_finalized()) MPI_Comm_free(&own_);
    }
    communicator(communicator const &) = delete;
    communicator &operator=(communicator const &) = delete;
    MPI_Comm get() const { return own_; }

private:
    MPI_Comm own_;
};

/** The plans of a problem. */
class plans {
public:
    plans(world const &where, std::shared_ptr<communicator> comm) : world_(where), comm_(std::move(comm)) {}

    world const &where() const { return world_; }

    /** The plan for these arguments. Collective where it is the first call with them. */
    thriffty_plan *find(int32_t precision, int64_t count, direction way, scale scaling) {
        int const here = way == direction::forward ? 0 : 1;
        variant *unused = nullptr;
        scale other = usual(here, scaling);
        for (variant &one : variants_) {
            if (one.precision != precision || one.count != count) continue;
            if (one.scales[here] == scaling) {
                one.used[here] = true;
                return one.plan.get();
            }
            other = one.scales[1 - here];
            if (!one.used[here]) unused = &one;
        }
        if (unused == nullptr) {
            variants_.emplace_back(precision, count);
            unused = &variants_.back();
        }
        unused->scales[here] = scaling;
        unused->scales[1 - here] = other;
        try {
            unused->plan = make(*unused);
        } catch (...) {
            variants_.remove_if([&](variant const &one) { return &one == unused; });
            throw;
        }
        unused->used[here] = true;
        return unused->plan.get();
    }

private:
    struct variant {
        variant(int32_t bits, int64_t arrays)
            : precision(bits), count(arrays), scales{{scale::none, scale::none}}, used{{false, false}},
              plan(nullptr, thriffty_plan_destroy) {}
        int32_t precision;
        int64_t count;
        /** Forward and backward. */
        std::array<scale, 2> scales;
        std::array<bool, 2> used;
        thriffty_handle plan;
    };

    /** The scale of the other direction that programs use with this one. */
    static scale usual(int here, scale scaling) {
        if (scaling == scale::symmetric) return scale::symmetric;
        return here == 0 && scaling == scale::none ? scale::full : scale::none;
    }

    thriffty_handle make(variant &wanted) const {
        wanted.plan.reset();
        problem const &mine = world_.mine();
        thriffty_options options;
        check(thriffty_options_init(&options, sizeof options));
        options.precision = wanted.precision;
        options.howmany = wanted.count;
        options.forward_scale = static_cast<int32_t>(wanted.scales[0]);
        options.inverse_scale = static_cast<int32_t>(wanted.scales[1]);
        for (int d = 0; d < 3; d++) {
            options.kinds[2 - d] = mine.kinds[d];
            options.input_order[2 - d] = 2 - mine.in.order[d];
            options.output_order[2 - d] = 2 - mine.out.order[d];
        }
        options.device = mine.device;
        options.stream = mine.stream;
        options.tolerance = environment::number("THRIFFTY_TOLERANCE");
        // Messages of single precision are no more exact than its rounding.
        if (wanted.precision == THRIFFTY_PRECISION_F32 && options.tolerance < std::numeric_limits<float>::epsilon())
            options.tolerance = 0.0;
        options.exchange = environment::text("THRIFFTY_EXCHANGE");
        if (options.exchange == nullptr && environment::is("THRIFFTY_HEFFTE", "strict"))
            options.exchange = exchange(mine.options.algorithm);
        if (environment::is("THRIFFTY_HEFFTE", "strict")) options.layouts = mine.options.use_pencils ? "pencils" : "slabs";
        char const *const everywhere = environment::text("THRIFFTY_WIRE_EVERYWHERE");
        options.wire_everywhere = everywhere != nullptr && std::string(everywhere) != "0";
        char const *const wisdom = environment::text("THRIFFTY_WISDOM");
        bool const measures = environment::text("THRIFFTY_TUNE") != nullptr;
        if (measures) {
            options.tune = THRIFFTY_TUNE_MEASURE;
            options.tune_seconds = environment::number("THRIFFTY_TUNE");
        } else if (wisdom != nullptr) {
            options.tune = THRIFFTY_TUNE_WISDOM;
            options.tune_text = wisdom;
        }
        thriffty_brick const in = world_.brick(mine.in), out = world_.brick(mine.out);
        thriffty_plan *made = nullptr;
        check(thriffty_plan_create(&made, comm_->get(), mine.transform, 3, world_.shape().data(), &in, &out, &options));
        thriffty_handle handle(made, thriffty_plan_destroy);
        if (measures && wisdom != nullptr) check(thriffty_plan_save_wisdom(made, wisdom));
        return handle;
    }

    static char const *exchange(reshape_algorithm algorithm) {
        switch (algorithm) {
        case reshape_algorithm::p2p: return "p2p";
        case reshape_algorithm::p2p_plined: return "pipelined";
        default: return "alltoallv";
        }
    }

    world world_;
    std::shared_ptr<communicator> comm_;
    std::list<variant> variants_;
};

/** The last plans of a communicator, which is where they are kept: as an attribute of MPI. */
class plan_cache {
public:
    /** The plans of a problem. Collective. */
    static std::shared_ptr<plans> find(problem const &wanted, MPI_Comm comm) {
        if (comm == MPI_COMM_NULL) throw std::runtime_error("the communicator is MPI_COMM_NULL");
        world const where(wanted, comm);
        plan_cache &cache = of(comm);
        // Devices and streams are each rank's own: they are not compared.
        if (wanted.device >= 0) return std::make_shared<plans>(where, cache.comm_);
        for (auto at = cache.recent_.begin(); at != cache.recent_.end(); ++at)
            if ((*at)->where().key() == where.key()) {
                cache.recent_.splice(cache.recent_.begin(), cache.recent_, at);
                return cache.recent_.front();
            }
        cache.recent_.push_front(std::make_shared<plans>(where, cache.comm_));
        if (cache.recent_.size() > most) cache.recent_.pop_back();
        return cache.recent_.front();
    }

private:
    /** Programs have one or two transforms of a grid at a time. */
    static constexpr size_t most = 4;

    explicit plan_cache(MPI_Comm comm) : comm_(std::make_shared<communicator>(comm)) {}

    static plan_cache &of(MPI_Comm comm) {
        static int const key = make_key();
        void *found = nullptr;
        int present = 0;
        MPI_Comm_get_attr(comm, key, &found, &present);
        if (!present) {
            found = new plan_cache(comm);
            MPI_Comm_set_attr(comm, key, found);
        }
        return *static_cast<plan_cache *>(found);
    }

    static int make_key() {
        int key = MPI_KEYVAL_INVALID, last = MPI_KEYVAL_INVALID;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, nullptr);
        // MPI_Finalize deletes attributes of MPI_COMM_SELF before anything else.
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &last, nullptr);
        MPI_Comm_set_attr(MPI_COMM_SELF, last, nullptr);
        return key;
    }

    static bool &is_leaving() {
        static bool leaving = false;
        return leaving;
    }

    static int leave(MPI_Comm, int, void *, void *) {
        is_leaving() = true;
        return MPI_SUCCESS;
    }

    /** Plans are destroyed together with the communicator, which is collective, and left to the
     * system
     * at the end. */
    static int drop(MPI_Comm, int, void *value, void *) {
        if (!is_leaving()) delete static_cast<plan_cache *>(value);
        return MPI_SUCCESS;
    }

    std::shared_ptr<communicator> comm_;
    std::list<std::shared_ptr<plans>> recent_;
};

} // namespace detail
} // namespace heffte

#endif
