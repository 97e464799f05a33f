#ifndef SAFELIGHT_WIDE_H
#define SAFELIGHT_WIDE_H
/* WIDE compiles a function twice, once for processors with wider registers. The functions that it calls must be INLINED
   to be compiled for them too. Both versions compute the same numbers, because neither contracts nor reorders
   operations. */
#if defined(__x86_64__) && defined(__linux__)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// The loader calls the function that chooses a clone before the sanitizer is initialized. The sanitizer's calls in that
// function would crash.
#define WIDE
#endif
#endif
#ifndef WIDE
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#else
#define WIDE
#endif
#define INLINED static inline __attribute__((always_inline))
#endif
