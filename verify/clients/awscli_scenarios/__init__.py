"""Scenarios with the AWS CLI, by subject."""
