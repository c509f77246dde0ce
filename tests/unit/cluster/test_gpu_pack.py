"""What a machine with a GPU must be able to run."""

import unittest

from pliantdev import gpu_pack
from pliantdev.errors import DevError


class GpuPackTest(unittest.TestCase):
    def test_the_newest_glibc_counts(self):
        for versions, newest in (
            ("", (0, 0)),
            ("GLIBC_2.17\nGLIBC_2.4\n", (2, 17)),
            ("GLIBC_2.9\nGLIBC_2.38\nGLIBC_2.2.5\n", (2, 38)),
        ):
            with self.subTest(versions):
                self.assertEqual(gpu_pack.newest_glibc(versions), newest)

    def test_a_newer_glibc_is_refused(self):
        gpu_pack.check("GLIBC_2.39", 0)
        with self.assertRaisesRegex(DevError, "glibc 2.41, later than 2.39"):
            gpu_pack.check("GLIBC_2.39\nGLIBC_2.41", 0)

    def test_a_large_pack_is_refused(self):
        gpu_pack.check("", 45 << 20)
        with self.assertRaisesRegex(DevError, "46 MiB; the limit is 45 MiB"):
            gpu_pack.check("", 46 << 20)


if __name__ == "__main__":
    unittest.main()
