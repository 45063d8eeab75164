"""A schedule and costs become a timeline: discrete events over compute streams and shared links."""
