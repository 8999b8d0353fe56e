class PrintQueue:
    """Jobs leave in the order they came."""

    def __init__(self):
        self.jobs = []

    def add(self, job):
        self.jobs.append(job)

    def next_job(self):
        """The next job, None when there is none."""
        if not self.jobs:
            return None
        return self.jobs.pop()
