"""A folder for the module search path: in it dynet, _dynet and dynet_config are dynet_lite. See dynet_lite/compat/install.py."""
