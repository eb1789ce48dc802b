import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { keepFoldersOnDisk } from '../support/temporary-place.ts'
import { SkippedTests } from '../all/skipped-tests.ts'

keepCompiledCode()
keepFoldersOnDisk()

// `npm run test:system`: packs and installs the release, which needs npm and the registry; damages a sample
// of spools; kills the daemon at random moments, during imports and copies of the ledger, on a full disk, and by power
// cuts; runs the commands of the documentation; tries damaged files one by one,
// custody with NATS, and other tests that take long (`*.slow.test.ts`). Too long for `npm test`.

/** What measures how an honest client is served, and how quickly a page opens. */
const alone = ['test/system/{hostile,page}.test.ts']
/** `npm run test:engines` runs them. */
const withEngines = ['test/ingest/amqp/*.slow.test.ts']
/** `npm run test:mutations` runs them. */
const mutations = ['test/**/*mutations.test.ts']

const shared = {
  pool: 'forks' as const,
  setupFiles: ['test/support/property-seed.ts'],
  // What hangs must end; what is slow, on a machine with other work, must not fail.
  testTimeout: 180_000,
  hookTimeout: 600_000,
}

export default defineConfig({
  test: {
    reporters: ['default', new SkippedTests()],
    // Tests that run at the same time do little but wait.
    maxConcurrency: 20,
    projects: [
      {
        test: {
          ...shared,
          name: 'together',
          include: [
            'test/system/**/*.test.ts',
            'test/**/*-kill.test.ts',
            'test/**/*.slow.test.ts',
            'test/crash/*-*.test.ts',
            // `npm test` has them over TCP.
            'test/ingest/mqtt/*.test.ts',
            // `npm test` has a sample.
            'test/mapping/{encodings/hostile-bodies,expression/hostile-values}.test.ts',
          ],
          env: { TRANSPORTS: 'tls ws wss', HOSTILE_MESSAGES: '300' },
          exclude: [...alone, ...withEngines, ...mutations],
          // Most of the time they wait for a process, a disk or a broker.
          maxWorkers: availableParallelism() + 1,
          // As in vitest.config.ts: loading the modules again for each file takes a tenth of the time.
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: { ...shared, name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
