"""Where devices and links of a network lie in a picture, whatever draws it."""
