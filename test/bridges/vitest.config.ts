import { defineConfig } from 'vitest/config'
import { SkippedTests } from '../all/skipped-tests.ts'

// `npm run test:bridges`: daemons with bridges to a real Mosquitto, for minutes: too long for `npm run test:system`.
export default defineConfig({
  test: {
    include: ['test/bridges/*.proof.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 300_000,
    reporters: ['default', new SkippedTests()],
  },
})
