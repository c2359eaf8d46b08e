"""Places of devices and links in a picture, for everything that draws one."""
