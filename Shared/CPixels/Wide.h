#ifndef SAFELIGHT_WIDE_H
#define SAFELIGHT_WIDE_H
/* Made twice, once for processors with wider registers; what is called within must be inlined to be made so too. Both give
   the same numbers, because neither contracts or reorders. */
#if defined(__x86_64__) && defined(__linux__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
#define INLINED static inline __attribute__((always_inline))
#endif
