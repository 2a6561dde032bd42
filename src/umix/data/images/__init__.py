"""Images: files on disk, the cache of decoded images, batch transforms, folders of one's own."""
