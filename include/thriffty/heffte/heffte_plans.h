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
    std::array<kind, 3> kinds;
    int32_t transform;
    plan_options options;
    /** The device of this rank's data, or -1, and its queue. */
    int32_t device;
    void *stream;
};

/** A variable of the environment; empty if there is none. */
inline std::string environment(char const *name) {
    char const *const found = std::getenv(name);
    return found == nullptr ? "" : found;
}

/** Options of a plan. `thriffty_plan_create` reports what is wrong with them, on all ranks. */
class named_options {
public:
    named_options() { check(thriffty_options_create(&all_)); }
    ~named_options() { thriffty_options_destroy(all_); }
    named_options(named_options const &) = delete;
    named_options &operator=(named_options const &) = delete;

    void set(char const *name, std::string const &value) { thriffty_options_set(all_, name, value.c_str()); }
    /** The beginning of a value. */
    std::string get(char const *name) const {
        char value[64] = "";
        thriffty_options_get(all_, name, value, sizeof value);
        return value;
    }
    thriffty_options *all() const { return all_; }

private:
    thriffty_options *all_ = nullptr;
};

/** The grid that the input boxes of all ranks cover. */
class world {
public:
    /** Collective. */
    world(problem const &mine, MPI_Comm comm, long long unused) : mine_(mine), whole_({{0, 0, 0}}, {{-1, -1, -1}}) {
        std::vector<long long> own;
        for (box3d<long long> const &box : {mine.in, mine.out}) {
            own.insert(own.end(), box.low.begin(), box.low.end());
            own.insert(own.end(), box.high.begin(), box.high.end());
            own.insert(own.end(), box.order.begin(), box.order.end());
        }
        for (kind one : mine.kinds) own.push_back(static_cast<long long>(one));
        own.push_back(mine.transform);
        own.push_back(static_cast<long long>(mine.options.algorithm));
        own.push_back(mine.options.use_pencils);
        own.push_back(mine.device >= 0);
        own.push_back(unused);
        int const words = static_cast<int>(own.size());
        all_.resize(own.size() * static_cast<size_t>(mpi::comm_size(comm)));
        MPI_Allgather(own.data(), words, MPI_LONG_LONG, all_.data(), words, MPI_LONG_LONG, comm);
        for (size_t at = 0; at < all_.size(); at += own.size()) {
            in_.push_back(box_at(&all_[at]));
            out_.push_back(box_at(&all_[at + 9]));
            // Of the present call, not of the problem.
            long long &word = all_[at + own.size() - 1];
            unused_ &= word;
            word = 0;
        }
        whole_ = find_world(in_);
        // Of planes, nothing is done along dimension 2.
        if (mine_.transform == THRIFFTY_TRANSFORM_R2R && whole_.is2d()) mine_.kinds[2] = kind::none;
        validate(own.size());
    }

    /** The plans without a user on any rank, one bit for each. */
    long long unused() const { return unused_; }

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

    static double logical(kind one, double n) {
        switch (one) {
        case kind::none: return 1.0;
        case kind::dct1: return 2.0 * (n - 1.0);
        case kind::dst1: return 2.0 * (n + 1.0);
        case kind::dct2:
        case kind::dst2: return 2.0 * n;
        default: return n;
        }
    }

    /** Throws for boxes that plans, which are made later, would refuse. The same on every rank. */
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
        double points = 1.0;
        for (int d = 0; d < 3; d++) points *= static_cast<double>(whole_.size[d]);
        if (points > std::ldexp(1.0, 58)) throw std::runtime_error("the grid has more than 2^58 points");
        box3d<long long> spectrum = whole_;
        bool halved = false;
        for (int d = 0; d < 3; d++)
            if (mine_.kinds[d] == kind::r2c) {
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
    long long unused_ = -1;
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
    plans(world const &boxes, std::shared_ptr<communicator> comm) : world_(boxes), comm_(std::move(comm)) {}

    world const &boxes() const { return world_; }

    /** The plan for these arguments. Collective where it is the first call with them. */
    thriffty_plan *find(int precision, int64_t count, direction way, scale scaling) {
        size_t const side = way == direction::forward ? 0 : 1;
        auto found = variants_.end();
        for (auto at = variants_.begin(); at != variants_.end(); ++at) {
            if (at->precision != precision || at->count != count) continue;
            if (at->scales[side] == scaling) {
                found = at;
                break;
            }
            // Only run in the other direction: its scale in this one can change.
            if (!at->used[side]) found = at;
        }
        if (found == variants_.end()) {
            variants_.emplace_front(precision, count);
            found = variants_.begin();
            found->scales[1 - side] = default_scale(side, scaling);
            if (variants_.size() > most_variants) variants_.pop_back();
        }
        variants_.splice(variants_.begin(), variants_, found);
        variant &chosen = variants_.front();
        if (chosen.plan == nullptr || chosen.scales[side] != scaling) {
            chosen.scales[side] = scaling;
            try {
                chosen.plan = make(chosen);
            } catch (...) {
                variants_.pop_front();
                throw;
            }
        }
        chosen.used[side] = true;
        return chosen.plan.get();
    }

private:
    struct variant {
        variant(int bits, int64_t arrays)
            : precision(bits), count(arrays), scales{{scale::none, scale::none}}, used{{false, false}},
              plan(nullptr, thriffty_plan_destroy) {}
        int precision;
        int64_t count;
        /** Forward and backward. */
        std::array<scale, 2> scales;
        std::array<bool, 2> used;
        thriffty_handle plan;
    };

    /** Precisions, numbers of arrays and scales that a program uses in turns. */
    static constexpr size_t most_variants = 8;

    /** The scale of the other direction that programs most often use with this one. */
    static scale default_scale(size_t side, scale scaling) {
        if (scaling == scale::symmetric) return scale::symmetric;
        return side == 0 && scaling == scale::none ? scale::full : scale::none;
    }

    thriffty_handle make(variant &wanted) const {
        wanted.plan.reset();
        problem const &mine = world_.mine();
        named_options options;
        if (environment("THRIFFTY_HEFFTE") == "strict") {
            options.set("exchange", name(mine.options.algorithm));
            options.set("layouts", mine.options.use_pencils ? "pencils" : "slabs");
        }
        thriffty_options_read_environment(options.all());
        bool const measures = options.get("tuning").compare(0, 7, "measure") == 0;
        // Messages of single precision are no more exact than its rounding.
        if (wanted.precision == 32 && std::atof(options.get("tolerance").c_str()) < std::numeric_limits<float>::epsilon())
            options.set("tolerance", "default");
        options.set("precision", "f" + std::to_string(wanted.precision));
        options.set("batch", std::to_string(wanted.count));
        options.set("forward_scale", name(wanted.scales[0]));
        options.set("inverse_scale", name(wanted.scales[1]));
        options.set("kinds", name(mine.kinds[2]) + "," + name(mine.kinds[1]) + "," + name(mine.kinds[0]));
        options.set("input_order", order(mine.in));
        options.set("output_order", order(mine.out));
        options.set("device", mine.device < 0 ? "host" : std::to_string(mine.device));
        thriffty_options_set_stream(options.all(), mine.stream);
        thriffty_brick const in = world_.brick(mine.in), out = world_.brick(mine.out);
        thriffty_plan *made = nullptr;
        check(thriffty_plan_create(&made, comm_->get(), mine.transform, 3, world_.shape().data(), &in, &out, options.all()));
        thriffty_handle handle(made, thriffty_plan_destroy);
        std::string const wisdom = environment("THRIFFTY_WISDOM");
        if (measures && !wisdom.empty()) check(thriffty_plan_save_wisdom(made, wisdom.c_str()));
        return handle;
    }

    static std::string name(kind one) {
        char const *const names[] = {"none", "c2c", "r2c", "dct1", "dct2", "dst1", "dst2"};
        return names[static_cast<int>(one)];
    }

    static std::string name(scale one) {
        char const *const names[] = {"none", "full", "symmetric"};
        return names[static_cast<int>(one)];
    }

    static std::string name(reshape_algorithm one) {
        char const *const names[] = {"alltoallv", "p2p", "pipelined", "alltoallv"};
        return names[static_cast<int>(one)];
    }

    /** The order of a box's axes, slowest first: axis 0 is dimension 2. */
    static std::string order(box3d<long long> const &box) {
        std::string axes;
        for (int place = 2; place >= 0; place--) axes += std::to_string(2 - box.order[place]) + (place > 0 ? "," : "");
        return axes;
    }

    world world_;
    std::shared_ptr<communicator> comm_;
    /** The last one used first. */
    std::list<variant> variants_;
};

/**
 * The plans of a communicator, which is where they are kept: as an attribute of MPI.
 *
 * Destroying a plan is collective, destructors of a program are not: when a rank drops a transform,
 * its plans stay here. The next constructor on the communicator tells the other ranks which plans
 * have no user, and all destroy those that nobody uses but the last few.
 */
class plan_cache {
public:
    /** The plans of a problem. Collective. */
    static std::shared_ptr<plans> find(problem const &wanted, MPI_Comm comm) {
        if (comm == MPI_COMM_NULL) throw std::runtime_error("the communicator is MPI_COMM_NULL");
        plan_cache &cache = get(comm);
        world const boxes(wanted, comm, cache.unused());
        cache.destroy(boxes.unused(), most);
        // Devices and streams are each rank's own: they are not compared.
        for (auto at = cache.all_.begin(); at != cache.all_.end() && wanted.device < 0; ++at)
            if ((*at)->boxes().key() == boxes.key()) {
                cache.all_.splice(cache.all_.begin(), cache.all_, at);
                return cache.all_.front();
            }
        cache.all_.push_front(std::make_shared<plans>(boxes, cache.comm_));
        return cache.all_.front();
    }

private:
    /** Plans that are kept without a user: programs have one or two transforms at a time. */
    static constexpr size_t most = 4;
    /** Plans that one word can tell about. */
    static constexpr size_t bits = 62;

    explicit plan_cache(MPI_Comm comm) : comm_(std::make_shared<communicator>(comm)) {}

    static plan_cache &get(MPI_Comm comm) {
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

    /** The plans that this rank does not use: a bit for each, the oldest first. */
    long long unused() const {
        long long found = 0;
        size_t bit = 0;
        for (auto at = all_.rbegin(); at != all_.rend() && bit < bits; ++at, bit++)
            if (at->use_count() == 1) found |= 1LL << bit;
        return found;
    }

    /** Destroys plans that no rank uses, the oldest first, until `kept` are left. Collective. */
    void destroy(long long unused, size_t kept) {
        auto at = all_.end();
        for (size_t bit = 0, count = all_.size(); bit < bits && bit + kept < count; bit++) {
            --at;
            if ((unused >> bit & 1) != 0) at = all_.erase(at);
        }
    }

    static int make_key() {
        int key = MPI_KEYVAL_INVALID, last = MPI_KEYVAL_INVALID;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &key, nullptr);
        // MPI_Finalize deletes attributes of MPI_COMM_SELF before anything else.
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &last, nullptr);
        MPI_Comm_set_attr(MPI_COMM_SELF, last, nullptr);
        return key;
    }

    static bool &is_finalizing() {
        static bool finalizing = false;
        return finalizing;
    }

    static int on_finalize(MPI_Comm, int, void *, void *) {
        is_finalizing() = true;
        return MPI_SUCCESS;
    }

    /**
     * Destroys the plans that no rank uses, as MPI_Comm_free is collective. Those of transforms
     * that outlive the communicator, and all plans in MPI_Finalize, are left to the end of the
     * program.
     */
    static int on_free(MPI_Comm, int, void *value, void *) {
        auto *const cache = static_cast<plan_cache *>(value);
        if (is_finalizing()) return MPI_SUCCESS;
        long long const mine = cache->unused();
        long long all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_BAND, cache->comm_->get());
        cache->destroy(all, 0);
        if (cache->all_.empty()) delete cache;
        return MPI_SUCCESS;
    }

    std::shared_ptr<communicator> comm_;
    /** The last one used first; the same list on every rank. */
    std::list<std::shared_ptr<plans>> all_;
};

} // namespace detail
} // namespace heffte

#endif
