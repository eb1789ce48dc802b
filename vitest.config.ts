import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:system` runs these: they need npm and the registry, kill the daemon many times, or try mistakes
    // that tests must notice.
    exclude: [
      'test/system/**',
      'test/**/*mutations.test.ts',
      'test/**/*-kill.test.ts',
      'test/crash/*-*.test.ts',
    ],
    // Processes are started, databases opened and sockets bound: each file gets a process of its own.
    pool: 'forks',
    // One more than there are processors: most of the time a test waits for a disk, a socket or another process.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default'],
  },
})
