"""The Agent Client Protocol: the same runs for editors that speak it. The only room that imports `acp`."""
