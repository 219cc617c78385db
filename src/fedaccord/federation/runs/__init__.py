"""Many runs: where they are made, and the file that keeps them."""
