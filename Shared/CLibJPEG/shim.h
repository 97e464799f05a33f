/* Only hands on the linker flag of libjpeg; CJPEG includes the library itself. */
