/* Provides the compiler flags of libjpeg; CJPEG includes the library itself. */
