"""What people and monitors read about a source: status, lag, intervals, views, gauges and forecasts."""
