import { defineConfig } from 'vitest/config'

// `npm run test:system`: packs and installs the release, which needs npm and the registry; damages a sample
// of spools; kills the daemon during releases, requeues, imports, copies of the ledger and work on batches,
// on a full disk, and by power cuts; and makes mistakes in the spool that the model and the crash test must
// notice. Too long for `npm test`.
export default defineConfig({
  test: {
    include: [
      'test/system/**/*.test.ts',
      'test/**/*mutations.test.ts',
      'test/**/*-kill.test.ts',
      'test/crash/*-*.test.ts',
    ],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 240_000,
    reporters: ['default'],
  },
})
