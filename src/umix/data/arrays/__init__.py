"""Arrays of one's own: features or images in .npz and .npy files, or in memory."""
