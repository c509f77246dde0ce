"""What the bench of the noise scale makes of the processor time of steps."""

import unittest

import noise


class ExtrasTest(unittest.TestCase):
    def test_a_measured_step_is_compared_with_those_around_it(self):
        used = {step: 100.0 + step + (10.0 if step % 16 == 0 else 0.0) for step in range(1, 64)}
        self.assertEqual(noise.extras(used, 0), [10.0] * 3)
        self.assertEqual(noise.extras(used, 8), [0.0] * 3, "measured steps are not among them")

    def test_a_step_without_all_its_neighbors_is_left_out(self):
        used = {step: 1.0 for step in range(64) if step != 30}
        self.assertEqual(noise.extras(used, 0), [0.0] * 2, "16 and 48, not 32")


if __name__ == "__main__":
    unittest.main()
