"""What is kept: blobs, and the versioned trees that name them."""
