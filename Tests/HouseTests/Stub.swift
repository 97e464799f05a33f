// House tests.
