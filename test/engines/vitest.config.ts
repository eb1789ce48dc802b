import { defineConfig } from 'vitest/config'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { keepFoldersOnDisk } from '../support/temporary-place.ts'
import { SkippedTests } from '../all/skipped-tests.ts'

keepCompiledCode()
keepFoldersOnDisk()

// `npm run test:engines`: NATS and RabbitMQ with three nodes on loopback, and gateways behind them, for minutes: too long
// for `npm run test:system`.
export default defineConfig({
  test: {
    include: ['test/engines/*.proof.ts', 'test/ingest/amqp/*.slow.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 300_000,
    reporters: ['default', new SkippedTests()],
  },
})
