"""BERT's encoder in PyTorch, by its best operations; every position is real."""
import torch
import torch.nn.functional as F


class Encoder(torch.nn.Module):

    def __init__(self, p, weights):
        super().__init__()
        self.p = p
        names = {name.removeprefix("bert."): w.float() for name, w in weights.items() if w.is_floating_point()}
        for name in [n for n in names if ".query." in n]:  # one product for all three
            parts = [names.pop(name.replace("query", x)) for x in ("query", "key", "value")]
            names[name.replace("query", "qkv")] = torch.cat(parts)
        for name, w in names.items():
            self.register_buffer(name.replace(".", "_"), w.clone())

    def weight(self, at):
        at = at.replace(".", "_")
        return getattr(self, at + "_weight"), getattr(self, at + "_bias")

    def norm(self, x, at):
        return F.layer_norm(x, (self.p["D"],), *self.weight(at), self.p["eps"])

    def forward(self, ids):
        p = self.p
        b, n = ids.shape
        x = F.embedding(ids, self.embeddings_word_embeddings_weight) + self.embeddings_position_embeddings_weight[:n]
        x = self.norm(x + self.embeddings_token_type_embeddings_weight[0], "embeddings.LayerNorm")
        for layer in range(p["L"]):
            at = f"encoder.layer.{layer}."
            qkv = F.linear(x, *self.weight(at + "attention.self.qkv"))
            q, k, v = qkv.view(b, n, 3, p["H"], -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, p["D"])
            x = self.norm(x + F.linear(a, *self.weight(at + "attention.output.dense")), at + "attention.output.LayerNorm")
            h = F.gelu(F.linear(x, *self.weight(at + "intermediate.dense")))
            x = self.norm(x + F.linear(h, *self.weight(at + "output.dense")), at + "output.LayerNorm")
        return x
