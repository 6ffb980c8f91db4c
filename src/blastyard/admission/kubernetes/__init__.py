"""Admission where the truth is in a Kubernetes namespace."""
