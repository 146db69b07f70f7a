"""The daemon's REST interface (`/api/v1`): what its TypeScript SDK and desktop app speak."""
