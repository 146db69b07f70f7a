"""Markdown as HTML that nothing can break out of; for the dashboard and for exports."""
