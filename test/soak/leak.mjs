// Loaded before the service: keeps 4 KiB of each request for ever.
import { subscribe } from "node:diagnostics_channel";

const kept = [];
subscribe("http.server.request.start", ({ request }) => kept.push([request.url, "x".repeat(4096).split("").join(" ")]));
