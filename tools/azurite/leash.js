// Ends Azurite together with whoever started it, and then takes its folder away.
//
// The owner holds the other end of standard input: however the owner ends, that end is closed.
"use strict";
const fs = require("fs");

process.stdin.on("end", () => {
  process.on("exit", () => fs.rmSync(process.env.LEASH_FOLDER, { recursive: true, force: true }));
  setTimeout(() => process.exit(1), 3000).unref();
  process.kill(process.pid, "SIGINT");
});
process.stdin.resume();
process.once("SIGINT", () => process.stdin.destroy()); // or the process would wait for its owner
