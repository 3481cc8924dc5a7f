"""Changes to what is staged, apart from new intervals: releases, schemas, signatures and purges."""
