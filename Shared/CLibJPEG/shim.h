/* Only hands on the compiler flags of libjpeg; CJPEG includes the library itself. */
