"""What broker and console share, who both let people in: signed tokens, the keys behind them, logs of who did what."""
