"""The examples of Shared/docs/python.md, run in their order against real services."""

import doctest
import os
import re
import unittest
from unittest import mock

from services import Services

PAGE = os.path.join(os.path.dirname(__file__), "../../../docs/python.md")


class DocumentationTests(unittest.TestCase):
    def test_the_examples_of_the_page_print_the_shown_output(self):
        services = Services().start()
        with services.library() as library:
            library.import_files(services.write_photos())
        with open(PAGE, encoding="utf-8") as file:
            # A fence would be part of the expected output.
            text = re.sub(r"^```.*$", "", file.read(), flags=re.MULTILINE)
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", PAGE, 0)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        report, before = [], os.getcwd()
        with mock.patch.dict(os.environ, services.environment):
            os.chdir(services.folder)
            try:
                result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
            finally:
                os.chdir(before)
        self.assertEqual(result.failed, 0, "".join(report))
        self.assertGreater(result.attempted, 30)
        services.stop()


if __name__ == "__main__":
    unittest.main()
