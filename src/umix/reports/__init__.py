"""Reports: tables made from run records alone; torch is never imported here."""
