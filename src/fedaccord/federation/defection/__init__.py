"""The audit of defection: would a client that gives less still reach its goal?"""
