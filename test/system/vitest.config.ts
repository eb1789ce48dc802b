import { defineConfig } from 'vitest/config'

// `npm run test:system`: packs and installs the release. It needs npm and the registry, so it is no part of `npm test`.
export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 240_000,
    reporters: ['default'],
  },
})
