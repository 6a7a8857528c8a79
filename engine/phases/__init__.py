"""The phases of an iteration, each one contracted method from carrier to carrier."""
