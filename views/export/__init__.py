"""The Export tab: the active variant as a file, and the whole way to a bundle for the job."""
