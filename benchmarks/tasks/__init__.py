"""The models that are timed, a file each. See common.py for what such a file holds."""
