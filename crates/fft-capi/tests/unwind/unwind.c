/* Two Rust libraries in one program, each of which catches panics of its own: libthriffty.a, and
 * other.rs as a static library. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thriffty.h>

int other_unwinds(void);

static int broken;

/* The clock that Rust's standard library reads. Without one, it panics. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    if (broken) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

/* A panic in thriffty is a status with its text. */
static int thriffty_unwinds(void) {
    const int64_t shape[] = {4, 6};
    double input[48] = {1}, output[48];
    thriffty_plan *plan;
    thriffty_status found;
    if (thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_C2C, 2, shape, NULL) != THRIFFTY_STATUS_OK ||
        thriffty_forward(plan, input, sizeof input, output, sizeof output) != THRIFFTY_STATUS_OK ||
        output[46] != 1.0)
        return 0;
    broken = 1;
    found = thriffty_forward(plan, input, sizeof input, output, sizeof output);
    broken = 0;
    return found == THRIFFTY_STATUS_INTERNAL && strstr(thriffty_last_error(), "a bug of the library") != NULL &&
           thriffty_plan_destroy(plan) == THRIFFTY_STATUS_OK;
}

int main(void) {
    int round;
    for (round = 0; round < 3; round++) {
        if (other_unwinds() != 1 || !thriffty_unwinds()) {
            fprintf(stderr, "round %d: %s\n", round, thriffty_last_error());
            return 1;
        }
    }
    return 0;
}
