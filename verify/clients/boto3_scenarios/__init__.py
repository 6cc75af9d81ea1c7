"""Scenarios with boto3, by subject."""
