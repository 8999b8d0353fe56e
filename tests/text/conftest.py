"""Property tests have no deadline: how fast a machine is says nothing about what is right."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
